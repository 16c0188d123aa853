package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
)

func (a *app) completionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print the completion of commands, jobs and files for a shell",
		GroupID: command.GroupRest,
		Long: "Prints a script that makes a shell complete commands, flags, ids of jobs, and files. SHELL is bash, " +
			"zsh, fish or powershell." + command.PlainExit,
		Example: "  source <(scrimp completion bash)        # in ~/.bashrc\n" +
			"  scrimp completion zsh > \"${fpath[1]}/_scrimp\"\n" +
			"  scrimp completion fish > ~/.config/fish/completions/scrimp.fish",
		ValidArgs: []cobra.Completion{"bash", "zsh", "fish", "powershell"}, Args: command.Takes("SHELL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				a.Content(bashWords)
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Out)
			}
			return fmt.Errorf("shell %q is not one of bash, zsh, fish, powershell", args[0])
		}}
}

// bashWords defines the two functions of the package bash-completion that the rest of the script calls, if that package
// is not installed.
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
