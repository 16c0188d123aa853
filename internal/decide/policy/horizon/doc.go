// Package horizon decides between waiting, spot and on-demand for a job with a
// deadline.
//
// It is a decision process of finite horizon. Its state is the time and the slack
// left, whether spot can be had and for how long that has been so, and the machine
// held with the overhead that it still owes. A Table holds the dollars that the
// best choices cost from each state on, where a market's hazards are known; a
// Watch learns what is particular about a market from its periods; the Solver
// weighs the tables around what the Watch finds. What all markets have in common
// is the Prior.
//
// The guard of package policy stands above every verdict. The tables know of it,
// so that they do not count on what it would forbid.
package horizon
