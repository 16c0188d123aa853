package jobs

import (
	"maps"
	"net/http"
	"slices"

	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// Shell refuses a job that would lack shell variables that it names, or bring some that it does not name. Only users
// of the data folder's socket share the host's files.
func Shell(bySocket bool, sent map[string]string, inherit []string) *reply.Refusal {
	if !bySocket && len(sent)+len(inherit) > 0 {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "inherit",
			Title: "variables of a shell on another machine are not passed on",
			Fix:   "write the values under env, or name them under secrets"}
	}
	for _, name := range inherit {
		if _, ok := sent[name]; !ok {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "inherit",
				Title: name + " is not set in the shell that submits the job",
				Fix:   "export it and submit with scrimp run, or take it out of inherit"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if !slices.Contains(api.Shell, name) && !slices.Contains(inherit, name) {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "shell",
				Title: "the job file does not name " + name + " of the shell", Fix: "name it under inherit, or do not send it"}
		}
	}
	return nil
}

// Secrets refuses a job that would lack the value of a secret that it names: the program would fail, or succeed
// without it, once a machine costs money.
func Secrets(sent map[string]string, named []string) *reply.Refusal {
	for _, name := range named {
		if _, ok := sent[name]; !ok {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "secrets",
				Title: "the job's secret " + name + " has no value",
				Fix:   "send its value in secrets beside spec, or take " + name + " out of secrets of the job file"}
		}
	}
	return nil
}
