"""What Handrail costs, beside hand-written floors measured in the same run.

`python -m benchmarks [NAME …] [--quick] [--json] [--list]` measures the rows and prints one table: what was measured,
what it took, what the floors took, the figure that is held against the target, and whether it is met. The exit code is
0 where every target is met and 1 where one is not.

The floors (`floors/`) do the same work with nothing of Handrail: *bare* is an asyncio loop over dicts and function
calls, *typed* has frozen typed messages, checked arguments, a task and a timeout for each tool, composed layers and
events. A floor and what stands beside it are measured in turn, many times, so that a busy machine slows both: a ratio
is the median over these pairs, a time or a difference that of the least disturbed rounds.

A limit in µs or ms holds for the machine it was set on, where a step of the floors took 3 and 17 µs (`paces.py`). The
same floors are measured here before and after each row, and the figure is divided by how many times as long they take
before it is held against the limit; the table shows both. Ratios, sizes and counts are judged as they are.

A topic (`topics/`, one file each) registers its rows by itself.
"""
