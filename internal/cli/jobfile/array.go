package jobfile

import (
	"fmt"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/show"
	"scrimp/internal/job/spec"
	"scrimp/internal/work/groups"
)

// AddArray gives a command the flag for arrays.
func (f *Flags) AddArray(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Array, "array", "", "the job once for each of these `indexes`, as 0-99, every second "+
		"as 0-98:2, or 0-99%8 for at most 8 at once (default: one job)")
	_ = cmd.RegisterFlagCompletionFunc("array", cobra.NoFileCompletions)
}

// Member is a member of the array that the flags ask for: the job with its share of the budget; and what turns the
// member's plan into that of the array. Without such a flag it is the job and its plan.
func (f *Flags) Member(j spec.Job) (member spec.Job, whole func(show.Plan) show.Plan, err error) {
	if f.Array == "" {
		return j, func(p show.Plan) show.Plan { return p }, nil
	}
	x, atOnce, err := groups.ParseIndexes(f.Array)
	if err != nil {
		return j, nil, fmt.Errorf("--array: %w", err)
	}
	budget := j.Budget.Dollars
	if budget != nil {
		j.Budget.Dollars = new(budget.Over(x.Members))
	}
	return j, func(p show.Plan) show.Plan { return p.OfArray(x.Members, atOnce, budget) }, nil
}
