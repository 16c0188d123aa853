package group

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
	"scrimp/internal/work/pipeline"
)

// Program returns a digest of the parts of a job, other than its inputs, that determine its outputs.
func Program(j spec.Job, inherited, name string, warm *pipeline.Warm) (string, *reply.Refusal) {
	text, err := json.Marshal(struct {
		Command, Setup, Image, Inherited string
		Args                             []string
		Env                              map[string]string
		Warm, Data                       []string `json:",omitempty"`
	}{j.Command, j.Setup, j.Image, inherited, j.Args, j.Env, warmOf(name, warm), sources(j.Data)})
	if err != nil {
		return "", &reply.Refusal{Status: http.StatusInternalServerError, Title: "a stage has no key", Err: err}
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// sources identifies the inputs under data: the name by which the program finds each, and its address. Their sizes and
// regions change no output.
func sources(data []spec.Data) (all []string) {
	for _, d := range data {
		all = append(all, d.Name, d.Path)
	}
	return all
}

// warmOf identifies a warm start: the pipeline whose deployed version it begins with, and the paths. Stages of other
// pipelines begin with another model, so that they share no outputs.
func warmOf(name string, w *pipeline.Warm) []string {
	if w == nil {
		return nil
	}
	return []string{name, w.From, w.To}
}
