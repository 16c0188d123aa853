package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Meanings lists the commands that a word of another tool stands for, as far as they exist at its place.
var Meanings = meaningsOf(map[string]string{
	"submit sbatch srun salloc launch start create apply train up": "run",
	"squeue ps ls list sinfo get-jobs":                             "list jobs status queue",
	"show describe info inspect sacct":                             "show status receipt",
	"kill scancel delete rm remove down terminate abort destroy":   "cancel stop gc",
	"ssh connect login-node bash interactive":                      "shell exec",
	"tail output stdout log":                                       "logs",
	"jupyter lab":                                                  "notebook",
	"cp scp rsync download fetch pull":                             "get",
	"price prices pricing instances gpus gpu-list show-gpus":       "offers catalog market",
	"cost spend spending report":                                   "costs receipt",
	"nodes cluster clusters instance machine":                      "machines",
	"history":                          "jobs costs",
	"port-forward tunnel ports":        "forward",
	"dashboard ui web":                 "open",
	"cron":                             "pipeline",
	"restart requeue retry":            "rerun resume",
	"sweep search hpo":                 "tune",
	"suspend hold":                     "pause",
	"unsuspend continue":               "resume",
	"nvidia-smi monitor gpustat watch": "top attach",
	"config auth":                      "login",
	"convert":                          "import",
	"validate lint":                    "check",
	"cluster-health health":            "doctor",
	"add new":                          "add set init",
})

// MeaningsOf splits the words of a table.
func meaningsOf(table map[string]string) map[string][]string {
	all := map[string][]string{}
	for words, commands := range table {
		for word := range strings.FieldsSeq(words) {
			all[word] = strings.Fields(commands)
		}
	}
	return all
}

// Suggestions returns the commands below cmd that a word may stand for: those that another tool calls so, or else those
// of a similar name. Of a word with two letters all others are similar but for one letter.
func Suggestions(cmd *cobra.Command, word string) (near []string) {
	for _, name := range Meanings[strings.ToLower(word)] {
		if slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == name }) {
			near = append(near, name)
		}
	}
	if len(near) > 0 {
		return near
	}
	cmd.SuggestionsMinimumDistance = 2
	if len(word) <= 2 {
		cmd.SuggestionsMinimumDistance = 1
	}
	return cmd.SuggestionsFor(word)
}
