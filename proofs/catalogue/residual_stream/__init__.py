"""Chapter 2: what every component reads and writes."""
