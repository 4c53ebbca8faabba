"""Chapter 5: what no layer and one layer can do."""
