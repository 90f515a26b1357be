"""Tables, figures and the HTML report, made from the results of studies."""
