"""What T is: attention, encoders, decoders and their kinds, as plain matrices."""
