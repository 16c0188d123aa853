package sim

// Fault breaks one behaviour on purpose, to prove that a property detects it.
type Fault string

// Faults of the world around the core.
const (
	FaultNone       Fault = ""
	FaultNoKey      Fault = "no-idempotency-key" // the provider rents again for a key that it has seen
	FaultNoSweep    Fault = "no-sweep"           // the server never compares the inventory
	FaultNoRedo     Fault = "no-redo"            // a restart does not repeat pending requests
	FaultLostFact   Fault = "lost-fact"          // a restart skips the first fact of an event
	FaultDropBill   Fault = "drop-posting"       // one posting is lost
	FaultDeaf       Fault = "deaf-agent"         // agents do not save before an interruption
	FaultTwiceHeard Fault = "heard-twice"        // a repeated message counts again

	FaultLateHeard   Fault = "heard-late"       // an overtaken message counts again
	FaultNoFence     Fault = "no-fence"         // a stale attempt may still publish
	FaultNoTick      Fault = "no-tick"          // time alone never wakes the server
	FaultMute        Fault = "mute"             // programs report no metric
	FaultMerge       Fault = "merged-metric"    // a report carries only the newest of its values
	FaultBusy        Fault = "always-busy"      // an idle machine looks busy
	FaultDeafProgram Fault = "deaf-program"     // programs ignore the signal to save and end
	FaultSlowFirm    Fault = "slow-on-demand"   // an on-demand machine takes an hour to be granted
	FaultDearer      Fault = "dearer"           // the provider bills more than it quotes
	FaultOwner       Fault = "wrong-team"       // a posting is booked to another team
	FaultNoMask      Fault = "no-mask"          // secrets in a program's last output are not masked
	FaultNoOutputs   Fault = "no-outputs"       // the path of stored outputs is not reported
	FaultOrder       Fault = "no-priority"      // jobs are submitted without their priority
	FaultNoMax       Fault = "no-max-price"     // jobs are submitted without their maximum price
	FaultUnasked     Fault = "ask-nobody"       // jobs above the approval threshold are submitted as if below it
	FaultRetryAll    Fault = "retry-everything" // every exit status asks for a retry
	FaultBilledTwice Fault = "orphan-twice"     // an instance that was written off as lost is billed again as an orphan
	FaultFirmInTime  Fault = "no-on-demand"     // the server never sees an on-demand offer
	FaultNoOwner     Fault = "no-incarnation"   // a restored copy treats the machines of the log as its own
	FaultNoLag       Fault = "no-consistency"   // the server does not know that lists lag
	FaultOneSweep    Fault = "one-sweep"        // the list of one provider counts as the list of all
	FaultNoBill      Fault = "empty-bill"       // the bill of an interrupted machine has no lines
	FaultProject     Fault = "wrong-project"    // a posting is booked to another project
	FaultNoPause     Fault = "no-pause"         // a pause is answered but never applied
	FaultOldTerms    Fault = "old-terms"        // a job resumes without its new limits
	FaultTwoKeys     Fault = "two-keys"         // a registered machine accepts a second key
	FaultUnclean     Fault = "unclean"          // a machine is reused before it is clean
	FaultAnyone      Fault = "any-user"         // a machine that served one user goes to another user's job
	FaultAnyImage    Fault = "any-image"        // a machine is reused regardless of its image
	FaultNoImage     Fault = "no-image"         // a machine is rented without the image of its launch
	FaultWaits       Fault = "waits-for-ever"   // an idle machine is never terminated
	FaultCrowds      Fault = "crowds"           // machine parts are assigned twice
	FaultEarly       Fault = "seat-early"       // a seat is freed before its task has ended
	FaultHoards      Fault = "half-a-gang"      // a gang keeps some of its machines however long the others do not come
	FaultUnpaid      Fault = "idle-unpaid"      // a posting of an idle machine is lost
	FaultNoRegister  Fault = "no-registration"  // agents take tasks without a key
	FaultLumps       Fault = "lumped-prices"    // postings use only the newest price of a period that had several
	FaultCrowded     Fault = "crowded-array"    // an array has more open members than it allows at once
	FaultHeedless    Fault = "heedless"         // a job starts although its dependency failed
	FaultEndless     Fault = "endless-group"    // the members of a group go on when its GPU-hours are used
	FaultBeyond      Fault = "beyond-the-end"   // the trials of a study continue after its end
	FaultUnreserved  Fault = "no-reserve"       // the trials of a proxy use what is reserved for full trainings
	FaultUnready     Fault = "unready-stage"    // a pipeline stage starts before its dependencies are done
	FaultDoubled     Fault = "made-twice"       // two pipelines of a project make the same output at once
	FaultOverlaps    Fault = "overlapping-run"  // a scheduled run starts although the previous one is still open
	FaultFullHold    Fault = "full-hold"        // a member starts although the group's hold has no room for it

	FaultStaleGroup  Fault = "stale-group"  // the core applies stale groups of a round
	FaultUnpinned    Fault = "unpinned"     // a round moves jobs that the guard has pinned
	FaultTwoDeciders Fault = "two-deciders" // jobs take reserved machines by themselves, even seats kept for others

	FaultHasty  Fault = "hasty-preemption"  // jobs are preempted before their minimum run is over
	FaultCostly Fault = "costly-preemption" // jobs are preempted although that costs more than it saves
	FaultUnkept Fault = "seat-not-kept"     // the seat that a job leaves its machine for goes to another job
	FaultRivals Fault = "rival-restart"     // a preempted job may start again before the critical job

	FaultArchiveLost   Fault = "archive-lost"   // the record of an archived job is lost
	FaultArchiveWrong  Fault = "archive-wrong"  // an archived job returns with a record that differs from its hash
	FaultGroupLost     Fault = "group-lost"     // the record of an archived group is lost
	FaultArchiveForged Fault = "archive-forged" // an archived job returns with another record and a matching hash
)
