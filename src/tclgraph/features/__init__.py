"""What is known just before a query, of the source, its past partners and every candidate."""
