"""What Handrail costs, beside hand-written floors measured in the same run.

`python -m benchmarks [NAME …] [--quick] [--json] [--list]` measures the rows and prints one table: what was measured,
what it took, what the floors took, the figure that is held against the target, and whether it is met. The exit code is
0 where every target is met and 1 where one is not.

The floors (`floors/`) do the same work with nothing of Handrail: *bare* is an asyncio loop over dicts and function
calls, *typed* has frozen typed messages, checked arguments, a task and a timeout for each tool, composed layers and
events. A floor and what stands beside it are measured in turn, many times, so that a busy machine slows both: a ratio
is the median over these pairs, a time or a difference that of the least disturbed rounds. A topic (`topics/`, one file
each) registers its rows by itself.
"""
