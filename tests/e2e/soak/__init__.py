"""The soak: many Hvpas, several operators and random faults for as long as one likes, with a record of every write.

`python -m tests.e2e.soak --minutes 20 --hvpas 500 --seed 1`: two operators, of which one leads. With `--shards 8` three
share the work. `plan` draws all that is to happen from the seed; `objects` and `controllers` are the users and
controllers of the cluster, `replicas` the operators, `dashboard` the dashboard and its users, `hostile` a tenant and a
stranger, `injections` the faults; `audit_trail` reads the audit log, `leases` who held the Leases by it, and `check`
judges it; `ending` judges what stands at the end, and `run` is the whole."""
