package agents

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/engine"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/workblob"
	"scrimp/internal/wire/api"
)

// errNotLent means that the server has no credentials for the job's store.
var errNotLent = errors.New("no engine declares the bucket in checkpoint.store")

// Credentials lends the agent of a live attempt credentials for its job's own prefix. Only the token of the request
// counts: the server derives the prefix from the job.
func (d *Service) Credentials(w http.ResponseWriter, r *http.Request) {
	attempt, _, ok := d.Gate.Attempt(w, r)
	if !ok {
		return
	}
	job, c, err := d.lend(r, attempt)
	switch {
	case err == nil:
		w.Header().Set("Cache-Control", "no-store")
		reply.JSON(w, api.StoreCredentials{Key: c.Key, Secret: c.Secret, Token: c.Token, Region: c.Region,
			Expires: c.Expires})
		return
	case errors.Is(err, httpblob.ErrOver):
		reply.Problem(w, http.StatusGone, "the attempt is over, and its token with it", "switch the machine off", nil)
		return
	case errors.Is(err, errNotLent):
		reply.Problem(w, http.StatusNotFound, "the server lends no credentials for the job's store",
			"the machine uses its own; an administrator declares the bucket under store and job_role of an AWS engine", err)
		return
	}
	d.Errors.Warn("cannot lend credentials for a store", "job", job, "attempt", attempt, "error", err)
	switch {
	case errors.Is(err, scopedcreds.ErrDenied): // other agents may use the bucket, so this is not an error of the token
		reply.Problem(w, http.StatusBadGateway, "the server may not lend credentials for the job's store",
			"an administrator lets the server assume the role that is declared under job_role", err)
	case errors.Is(err, engine.ErrThrottled):
		w.Header().Set("Retry-After", "2")
		reply.Problem(w, http.StatusTooManyRequests, "credentials were requested too often", "try again", err)
	default:
		reply.Problem(w, http.StatusServiceUnavailable, "there are no credentials for the store yet", "try again", err)
	}
}

// lend creates credentials for the job of the attempt.
func (d *Service) lend(r *http.Request, attempt string) (job string, c scopedcreds.Credentials, err error) {
	job, store, err := d.lentStore(r, attempt)
	if err != nil {
		return job, c, err
	}
	lender, prefix := d.Lender(store, job)
	c, err = lender.Lend(r.Context(), prefix, job)
	return job, c, err
}

// lentStore returns the job of the attempt and its store, if the server lends credentials for it.
func (d *Service) lentStore(r *http.Request, attempt string) (job, store string, err error) {
	job, live := d.jobOfAttempt(attempt)
	if !live || !d.Control.Live(attempt) {
		return job, "", httpblob.ErrOver
	}
	raw, _, err := d.Control.Spec(r.Context(), job)
	if err != nil {
		return job, "", err
	}
	j, err := spec.Decode(raw)
	if err != nil {
		return job, "", fmt.Errorf("read the job file: %w", err)
	}
	if j.Checkpoint.Dir == "" {
		return job, "", errNotLent
	}
	if lender, _ := d.Lender(j.Checkpoint.Store, job); lender == nil {
		return job, "", errNotLent
	}
	return job, j.Checkpoint.Store, nil
}

// Limits on requests that wait for a folder to reach its bucket: of one machine, and of all.
const (
	agentWaits = 2
	allWaits   = 4096
)

// WorkBlob returns where in the job's bucket its work folder lies. If the response names no place, the agent fetches
// the folder from the server.
func (d *Service) WorkBlob(w http.ResponseWriter, r *http.Request) {
	attempt, node, ok := d.Gate.Attempt(w, r)
	if !ok {
		return
	}
	end, err := d.waits.Open(api.Rank(attempt, node), agentWaits, allWaits)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		reply.Problem(w, http.StatusTooManyRequests, "too many wait for work folders", "try again", err)
		return
	}
	defer end()
	job, store, err := d.lentStore(r, attempt)
	var is api.WorkBlob
	if why := r.URL.Query().Get("refused"); err == nil && why != "" {
		d.Blobs.Refused(job, attempt, refusal(why))
	} else if err == nil && d.lendsWork(attempt) { // otherwise the server sends the folder, or says why it cannot
		is, err = d.Blobs.Ask(r.Context(), job, store)
	}
	switch {
	case errors.Is(err, httpblob.ErrOver):
		reply.Problem(w, http.StatusGone, "the attempt is over, and its token with it", "switch the machine off", nil)
	case err == nil, errors.Is(err, errNotLent), errors.Is(err, workblob.ErrServer):
		reply.JSON(w, is)
	default:
		reply.Problem(w, http.StatusServiceUnavailable, "cannot find the work folder now", "try again", err)
	}
}

// refusal returns an agent's reason if it is one of the known ones, for the log.
func refusal(why string) string {
	if slices.Contains([]string{api.WorkMissing, api.WorkDamaged, api.WorkAway}, why) {
		return why
	}
	return "unknown"
}
