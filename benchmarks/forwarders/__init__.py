"""The parts that the floor and front_choice.py are put together from: server stacks and upstream clients."""
