package client

// Storage is what a server keeps on its disk, and what live jobs and groups need elsewhere. The sizes are at most a
// minute old, as long as nothing was removed.
type Storage struct {
	// Kinds lists the use of the whole data folder by kind; null for callers who do not see all teams.
	Kinds []StorageUse `json:"kinds"`
	// Teams lists the use of each team that the caller sees, by name and kind. Contents that work folders of a team
	// share count once.
	Teams []TeamStorage `json:"teams"`
	// Needed lists the paths and addresses that job files of live jobs and open groups name.
	Needed []string `json:"needed"`
	// Hidden counts live jobs and open groups of teams that the caller does not see.
	Hidden int `json:"hidden"`
}

// StorageUse is the disk use of one kind of data.
type StorageUse struct {
	Kind  string `json:"kind"` // database, logs, work, outputs, checkpoints, machines, reserve or other
	Bytes int64  `json:"bytes"`
}

// TeamStorage is the disk use of a team.
type TeamStorage struct {
	Team string `json:"team"`
	StorageUse
}
