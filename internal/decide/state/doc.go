// Package state holds what is: jobs, attempts and their tasks, allocations, instances,
// offers and what was learned of them. Its fields are closed: Apply, which records a
// decision, and Observe, which records what was seen, are the only ways to change it.
// Neither runs a rule, so a log replays under any later policy.
package state
