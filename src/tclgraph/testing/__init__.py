"""The contract suite: what every model promises, as checks that any model can be run through.

Needs hypothesis: `pip install "tclgraph[testing]"`.
"""

from tclgraph.testing.contract import CHECKS as CHECKS
from tclgraph.testing.contract import check_contract as check_contract
