// Package state holds jobs, attempts and their tasks, allocations, instances, offers and what scrimp has learned
// about them. Only two methods change a State: Apply records a decision, and Observe records an event. Neither runs
// a rule, so a log replays under any later policy.
package state
