"""Pictures and pages: what people look at rather than read."""
