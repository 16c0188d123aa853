package state

import (
	"time"

	"scrimp/internal/market"
)

// Facts about attempts and their tasks.
type (
	// AttemptBegan: an allocation is complete, and the job's next attempt has its machines.
	AttemptBegan struct {
		Attempt string `json:"attempt"`
		// Adopted: it was granted after it had been given up, and the waiting job uses it.
		Adopted bool `json:"adopted,omitempty"`
		// Partial: it never got all its machines, and those it got are terminated.
		Partial bool `json:"partial,omitempty"`
	}
	// TaskClaimed: the agent of a machine has received its task.
	TaskClaimed struct {
		Attempt string `json:"attempt"`
	}
	// TaskStarted: the program runs. Lost lists the earlier attempts whose lost time changed. Work is the useful
	// work in the checkpoint it started from.
	TaskStarted struct {
		Attempt string        `json:"attempt"`
		Work    time.Duration `json:"work_ns"`
		Lost    []LostTime    `json:"lost,omitempty"`
	}
	// NoticeTaken: the provider will interrupt its machine.
	NoticeTaken struct {
		Attempt string `json:"attempt"`
	}
	// DrainRequested: the task must save and end; its machine is terminated at By at the latest.
	DrainRequested struct {
		Attempt string    `json:"attempt"`
		Why     string    `json:"why"`
		By      time.Time `json:"by"`
		// MigratesTo is the offer that the task leaves its machine for; empty: none.
		MigratesTo market.OfferID `json:"migrates_to,omitempty"`
		// Rests is the time before which neither a round nor a consolidation moves the job again; zero: no change.
		Rests time.Time `json:"rests,omitzero"`
		// Keeps is the part of a shared machine that is kept for the job until it has left its own; nil: none.
		Keeps *Keep `json:"keeps,omitempty"`
	}
	// TaskEnded: its program has ended.
	TaskEnded struct {
		Attempt string        `json:"attempt"`
		Lost    time.Duration `json:"lost_ns,omitempty"` // time lost by the end
	}
	// TaskCut: the machine of a rank ended before its attempt began. Lost is the time lost by that.
	TaskCut struct {
		Attempt string        `json:"attempt"`
		Node    int           `json:"node,omitempty"`
		Lost    time.Duration `json:"lost_ns,omitempty"`
	}
	// TimeSettled: the use of a rank's time is posted up to Until.
	TimeSettled struct {
		Attempt string    `json:"attempt"`
		Node    int       `json:"node,omitempty"`
		Until   time.Time `json:"until"`
	}
)

// LostTime is the total time that a rank of an attempt has lost.
type LostTime struct {
	Attempt string        `json:"attempt"`
	Node    int           `json:"node,omitempty"`
	Lost    time.Duration `json:"lost_ns"`
}
