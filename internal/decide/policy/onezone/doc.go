// Package onezone decides between waiting, spot and on-demand for a job with a
// deadline.
//
// The method is a decision process with a finite horizon. Its state is the time and the slack left, whether spot is
// available and since when, and the held machine with its remaining overhead. A Table holds the expected dollars of
// the best choices from each state, for known hazards of the market. A Watch learns the specifics of a market from
// its periods, and the Solver interpolates between tables around what the Watch finds. The Prior is what all
// markets have in common.
//
// The guard of package policy overrides every verdict. The tables account for it, so they do not count on choices
// that it would forbid.
package onezone
