package cli

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	api "scrimp/client"
)

func (a *app) completionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print the completion of commands, jobs and files for a shell", GroupID: groupRest,
		Long: "Prints what teaches a shell to complete commands, flags, the ids of jobs, and files. SHELL is bash, " +
			"zsh, fish or powershell." + plainExit,
		Example: "  source <(scrimp completion bash)        # in ~/.bashrc\n" +
			"  scrimp completion zsh > \"${fpath[1]}/_scrimp\"\n" +
			"  scrimp completion fish > ~/.config/fish/completions/scrimp.fish",
		ValidArgs: []cobra.Completion{"bash", "zsh", "fish", "powershell"}, Args: takes("SHELL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				a.printf("%s", bashWords)
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return fmt.Errorf("shell %q is none of bash, zsh, fish, powershell", args[0])
		}}
}

// bashWords stands in for the two functions of the package bash-completion that
// the rest of the script calls, where that package is not installed.
const bashWords = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD > 0 ? COMP_CWORD - 1 : 0]}
        words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
    }
fi
if ! declare -F _filedir >/dev/null; then
    _filedir() {
        local name
        while IFS= read -r name; do
            if [[ $1 == -d || -d $name ]]; then
                [[ -d $name ]] && COMPREPLY+=("$name/")
            elif [[ -z $1 || $name == *.@($1) ]]; then
                COMPREPLY+=("$name")
            fi
        done < <(compgen -f -- "$cur")
    }
fi
`

// every and live say which jobs a shell offers.
func every(api.Job) bool  { return true }
func live(j api.Job) bool { return !j.Closed }

// completeJob offers the ids of the jobs in keep as the first argument. It asks a server
// that runs and starts none: a key in a shell must cost nothing.
func (a *app) completeJob(keep func(api.Job) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			if cmd.Name() == "exec" {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := a.open(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var all []api.Job
		if err := c.do(cmd.Context(), http.MethodGet, "/v1/jobs", nil, &all); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []cobra.Completion
		for _, j := range all {
			if keep(j) {
				ids = append(ids, cobra.CompletionWithDesc(j.ID, j.State))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// files offers files with these endings.
func files(endings ...cobra.Completion) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// completeJobFile offers YAML files, and any file after --.
func completeJobFile(cmd *cobra.Command, args []string, part string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash >= 0 && dash < len(args): // while completing, a -- is put behind what is there
		return nil, cobra.ShellCompDirectiveDefault
	case len(args) > 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return files("yaml", "yml")(cmd, args, part)
}

func completeFolder(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeMarket offers the built-in markets beside files.
func completeMarket(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"calm", "stormy"}, cobra.ShellCompDirectiveDefault
}
