"""Reports: tables, figures and one HTML page, made from the results of studies."""
