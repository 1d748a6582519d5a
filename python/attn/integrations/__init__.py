"""The attention that other libraries call, served by attn. Each module imports its library when it is
imported itself, and attn imports none of them."""
