"""The attention functions of other libraries, served by attn. Each module imports its library when
it is imported itself, and attn imports none of these modules."""
