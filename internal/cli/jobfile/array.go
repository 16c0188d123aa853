package jobfile

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
)

// AddArray adds the --array flag to a command.
func (f *Flags) AddArray(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Array, "array", "", "the job once for each of these `indexes`, as 0-99, every second "+
		"as 0-98:2, or 0-99%8 for at most 8 at once (default: one job)")
	_ = cmd.RegisterFlagCompletionFunc("array", cobra.NoFileCompletions)
}

// Array is an array requested with --array.
type Array struct {
	groups.Indexes
	AtOnce int
	Budget *money.Amount // of all members together; nil for none
}

// Member returns the job of one array member, with its share of the budget, and the array. Without --array it returns
// the job and no array.
func (f *Flags) Member(j spec.Job) (member spec.Job, a *Array, err error) {
	if f.Array == "" {
		return j, nil, nil
	}
	a = &Array{Budget: j.Budget.Dollars}
	if a.Indexes, a.AtOnce, err = groups.ParseIndexes(f.Array); err != nil {
		return j, nil, fmt.Errorf("--array: %w", err)
	}
	if a.Budget != nil && j.First == "deadline" {
		return j, nil, errors.New("--array: the budget of an array comes before its deadline: leave out " +
			"`first: deadline`, or the budget")
	}
	if a.Budget != nil {
		j.Budget.Dollars = new(a.Budget.Over(a.Members))
	}
	return j, a, nil
}
