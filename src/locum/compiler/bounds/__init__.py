"""How exact a network of units is: error bounds of gates, heads and the whole network."""
