"""MongoDB: where events come from, and where they are marked once they are out."""
