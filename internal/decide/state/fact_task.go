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
		// Adopted: it was granted although it was given up, and the job, which waited, uses it.
		Adopted bool `json:"adopted,omitempty"`
		// Partial: it never got all its machines, and those that it got are given back.
		Partial bool `json:"partial,omitempty"`
	}
	// TaskClaimed: the agent of a machine has its task.
	TaskClaimed struct {
		Attempt string `json:"attempt"`
	}
	// TaskStarted: the program runs. Lost says what earlier attempts lost by it, where
	// that changed; Work is the useful work in the checkpoint that it began from.
	TaskStarted struct {
		Attempt string        `json:"attempt"`
		Work    time.Duration `json:"work_ns"`
		Lost    []LostTime    `json:"lost,omitempty"`
	}
	// NoticeTaken: the provider will take its machine.
	NoticeTaken struct {
		Attempt string `json:"attempt"`
	}
	// DrainRequested: it is asked to save and end, and given back at By at the latest.
	DrainRequested struct {
		Attempt string    `json:"attempt"`
		Why     string    `json:"why"`
		By      time.Time `json:"by"`
		// MigratesTo is the offer for which the machine is left; "": none.
		MigratesTo market.OfferID `json:"migrates_to,omitempty"`
	}
	// TaskEnded: its program runs no longer.
	TaskEnded struct {
		Attempt string        `json:"attempt"`
		Lost    time.Duration `json:"lost_ns,omitempty"` // time lost by it
	}
	// TaskCut: a rank's machine had ended before its attempt began. Lost is time lost by it.
	TaskCut struct {
		Attempt string        `json:"attempt"`
		Node    int           `json:"node,omitempty"`
		Lost    time.Duration `json:"lost_ns,omitempty"`
	}
	// TimeSettled: the use of a rank's time is posted up to then.
	TimeSettled struct {
		Attempt string    `json:"attempt"`
		Node    int       `json:"node,omitempty"`
		Until   time.Time `json:"until"`
	}
)

// LostTime is what a rank of an attempt has lost in all.
type LostTime struct {
	Attempt string        `json:"attempt"`
	Node    int           `json:"node,omitempty"`
	Lost    time.Duration `json:"lost_ns"`
}
