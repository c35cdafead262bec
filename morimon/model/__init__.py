"""The vocabulary: events and configuration as frozen structs, and their codec."""
