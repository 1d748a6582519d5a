"""PTX executed on a CPU: what the rooms below the simulator make of a kernel, without a GPU."""
