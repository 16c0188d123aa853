package command

import (
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/market/catalog"
)

// Every is of all jobs: it says, as Live does, which a shell offers.
func Every(api.Job) bool { return true }

// Live is of jobs that are not closed.
func Live(j api.Job) bool { return !j.Closed }

// CompleteJob offers the ids of the jobs in keep as the first argument.
func (a *App) CompleteJob(keep func(api.Job) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, part string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			if cmd.Name() == "exec" {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.CompleteJobs(keep)(cmd, args, part)
	}
}

// CompleteJobs offers the ids of the jobs in keep that are no arguments yet. It asks a server
// that runs and starts none: a key in a shell must cost nothing.
func (a *App) CompleteJobs(keep func(api.Job) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := a.Open(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var all []api.Job
		if err := c.Do(cmd.Context(), http.MethodGet, "/v1/jobs", nil, &all); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []cobra.Completion
		for _, j := range all {
			if keep(j) && !slices.Contains(args, j.ID) {
				ids = append(ids, cobra.CompletionWithDesc(j.ID, j.State))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// Files offers files with these endings.
func Files(endings ...cobra.Completion) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// CompleteJobFile offers YAML files, and any file after --.
func CompleteJobFile(cmd *cobra.Command, args []string, part string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash >= 0 && dash < len(args): // while completing, a -- is put behind what is there
		return nil, cobra.ShellCompDirectiveDefault
	case len(args) > 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return Files("yaml", "yml")(cmd, args, part)
}

// CompleteFolder offers folders.
func CompleteFolder(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// CompleteMarket offers the built-in markets beside files.
func CompleteMarket(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"calm", "stormy"}, cobra.ShellCompDirectiveDefault
}

// Words offers these words.
func Words(list ...cobra.Completion) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// CompleteAccelerator offers the kinds of accelerators that the catalogue knows.
func CompleteAccelerator(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	for _, a := range catalog.Accelerators() {
		names = append(names, a.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
