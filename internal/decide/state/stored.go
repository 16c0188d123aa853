package state

// Stored names the content that the server stored for a job before the event that submits it. A submission that broke
// off before its event has left content that no event names, and no job uses it.
type Stored struct {
	Work  string `json:"work,omitempty"`  // digest of the work folder; empty: the job has none
	Vault string `json:"vault,omitempty"` // entry of the vault with its secrets; empty: the job has none
}

// Stored returns the content stored for the job, or nil for a member of a group, which uses the group's, and for a
// job of a release that stored content under the job's name only.
func (j *Job) Stored() *Stored { return j.r.Stored }

// Secrets returns the entry of the vault with the job's secrets, empty if it has none. A member of a group uses the
// group's.
func (j *Job) Secrets() string {
	if j.r.Stored != nil {
		return j.r.Stored.Vault
	}
	return j.owner()
}
