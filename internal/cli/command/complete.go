package command

import (
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/market/accelerator"
)

// Every selects all jobs for shell completion.
func Every(api.Job) bool { return true }

// Live selects the jobs that are not closed.
func Live(j api.Job) bool { return !j.Closed }

// CompleteJob completes the first argument with the IDs of the jobs that keep selects.
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

// CompleteJobs completes arguments with the IDs of further jobs that keep selects. It uses a running server and starts
// none, because pressing a key in a shell must cost nothing.
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

// Files completes files with the given extensions.
func Files(endings ...cobra.Completion) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// CompleteJobFile completes YAML files, and any file after --.
func CompleteJobFile(cmd *cobra.Command, args []string, part string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash >= 0 && dash < len(args): // during completion, -- follows the existing words
		return nil, cobra.ShellCompDirectiveDefault
	case len(args) > 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return Files("yaml", "yml")(cmd, args, part)
}

// CompleteFolder completes folders.
func CompleteFolder(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// CompleteMarket completes the built-in markets and files.
func CompleteMarket(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"calm", "stormy"}, cobra.ShellCompDirectiveDefault
}

// Words completes the given words.
func Words(list ...cobra.Completion) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// CompleteAccelerator completes the accelerators of the catalogue.
func CompleteAccelerator(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	for _, a := range accelerator.Accelerators() {
		names = append(names, a.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
