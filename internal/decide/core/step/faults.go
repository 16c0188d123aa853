package step

// Faults is how a machine breaks its own rules, for the simulator to prove that
// it would notice. A server sets none.
type Faults struct {
	LetsIn   func(*Refusal) bool   // whether a refusal counts for nothing
	Unasked  bool                  // nobody is asked for an approval
	Twice    bool                  // parts are held beside their hold
	Keeps    bool                  // a hold that is closed keeps what it held
	Spares   func(job string) bool // whether a job goes on though a limit of it is spent
	TwoKeys  bool                  // a machine that has a key takes another
	Unclean  bool                  // a machine is taken before it is clean
	Anyone   bool                  // a machine that served one user is taken by another's job
	Images   bool                  // a machine is taken whatever image it runs
	Crowds   bool                  // parts of a machine are given that others have
	Early    bool                  // a seat is left before its task is gone
	Waits    bool                  // a machine without a task is never given back
	Stale    bool                  // the groups of a round are not held against the newest state
	Unpins   bool                  // a round moves jobs that the guard has pinned
	Crowded  bool                  // more members of a group are open than may be at once
	Lumps    bool                  // a time that had several prices is posted at the newest
	Heedless bool                  // jobs begin though what they were to come after has failed
	Unready  bool                  // stages of a pipeline begin before those that they need
	Doubled  bool                  // two pipelines of a project make the same at once
	Overlaps bool                  // a run of a schedule begins though the one before it is not over
	Beyond   bool                  // trials of a study go on beyond their end
	Seizes   bool                  // jobs take what is reserved by themselves, also where it is kept for others
}

// Break breaks rules from now on.
func (c *Context) Break(f Faults) { c.Faults = f }
