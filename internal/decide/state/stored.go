package state

// Stored names the content that the server stored for a job or a group before the event that submits it. A submission
// that broke off before its event has left content that no event names, and no job uses it.
type Stored struct {
	Work  string `json:"work,omitempty"`  // digest of the work folder; empty: there is none
	Vault string `json:"vault,omitempty"` // entry of the vault with the secrets; empty: there are none
}

// stored returns the content stored for a job, which for a member is the group's. It is nil for submissions to older
// releases, which stored content under the name only.
func (s *State) stored(j *Job) *Stored {
	if j.r.Stored != nil {
		return j.r.Stored
	}
	return s.StoredOf(Submitted(j.r.Terms.Group))
}

// StoredOf returns the content stored for a group; nil for a submission to an older release.
func (s *State) StoredOf(group string) *Stored {
	if g := s.groups[group]; g != nil {
		return g.Stored
	}
	return nil
}

// Work returns the name under which the work folder of a job is stored, and the record of what its submission stored.
// stored is nil for submissions to older releases, and for a stage of a pipeline, whose folder is built from files and
// outputs when it starts.
func (s *State) Work(j *Job) (name string, stored *Stored) {
	if j.r.Terms.Stage != "" {
		return j.Inputs(), nil
	}
	return j.Inputs(), s.stored(j)
}

// Secrets returns the entry of the vault with the job's secrets, empty if it has none. A member of a group uses the
// group's.
func (s *State) Secrets(j *Job) string {
	if is := s.stored(j); is != nil {
		return is.Vault
	}
	return j.owner()
}
