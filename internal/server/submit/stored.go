package submit

import (
	"errors"
	"net/http"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/workdir"
	"scrimp/internal/wire/api"
)

// store stores the work folder of a job or a group, and the secrets apart from the log. The event that submits it names
// both, so no job uses what an interrupted submission has left under the name.
func (d *Service) store(r *http.Request, id, team string, b api.Submission) (*state.Stored, *reply.Refusal) {
	if no := d.storeFolder(r, id, team, b); no != nil {
		return nil, no
	}
	ref, err := d.Uploads.Store.Of(id)
	if err != nil && !errors.Is(err, workdir.ErrNone) {
		return nil, notStored(err)
	}
	entry, err := d.Vault.Add(id, secret.Values{Secrets: b.Secrets, Shell: b.Shell})
	if err != nil {
		return nil, notStored(err)
	}
	return &state.Stored{Work: ref.Tree, Vault: entry}, nil
}

// storeFolder stores the work folder, after it has removed what an interrupted submission left under the name.
func (d *Service) storeFolder(r *http.Request, id, team string, b api.Submission) *reply.Refusal {
	err := d.Vault.Forget(id)
	if err == nil {
		err = d.assignFolder(r, id, b)
	}
	if err == nil && b.Rerun != "" {
		if no := d.removed(r, b.Rerun); no != nil {
			return no
		}
	}
	if err == nil {
		if err := d.Quota(r.Context(), team, id); err != nil {
			return &reply.Refusal{Status: http.StatusInsufficientStorage, Title: "the team has used its disk", Err: err,
				Fix: "remove what is old with scrimp gc, or ask an admin for more with scrimp teams set " + team + " --disk"}
		}
		return nil
	}
	return notStored(err)
}

// notStored returns the refusal of a submission whose content was not stored.
func notStored(err error) *reply.Refusal {
	if errors.Is(err, workdir.ErrNoRoom) {
		return &reply.Refusal{Status: http.StatusInsufficientStorage, Title: "the server's disk has no room for the folder",
			Fix: "make room on it, as with scrimp gc, or leave data out with a file .scrimpignore"}
	}
	return &reply.Refusal{Status: http.StatusUnprocessableEntity, Title: "the work folder was not copied",
		Fix: "give another with workdir, or leave out what cannot be read with .scrimpignore", Err: err}
}

// removed refuses to rerun a job whose work folder was removed.
func (d *Service) removed(r *http.Request, job string) *reply.Refusal {
	is, err := d.Kept.Removed(r.Context(), job)
	if err != nil {
		return unread(err)
	}
	return artifacts.RemovedOn(is.Work, "work folder", job, "submit it again from its folder, with scrimp run")
}

// assignFolder gives the job its work folder.
func (d *Service) assignFolder(r *http.Request, id string, b api.Submission) error {
	folders := d.Uploads.Store
	err := folders.Drop(id) // left by an interrupted submission
	switch {
	case err != nil:
	case b.Rerun != "":
		of := b.Rerun
		had := true
		d.Control.Job(of, func(m *core.Machine, j *core.Job) {
			var is *state.Stored
			of, is = m.State().Work(j)
			had = is == nil || is.Work != ""
		})
		if !had {
			break
		}
		if err = folders.Again(id, of); errors.Is(err, workdir.ErrNone) {
			err = nil // the other job had none
		}
	case b.Folder != "":
		err = folders.Copy(id, b.Folder, d.Dir)
	case b.Work != "":
		err = d.Uploads.Give(auth.CallerOf(r), b.Work, id)
	}
	return err
}
