"""What a run is set to: settings with their types, and the YAML files that hold them."""
