package attempt

import (
	"context"
	"log/slog"
	"time"

	"scrimp/internal/agent/keeper"
	"scrimp/internal/agent/notice"
	"scrimp/internal/agent/setup"
	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/wire/api"
)

// Config is what an attempt needs to know of its machine and its agent.
type Config struct {
	Instance   string           // the provider's id of the machine
	MachineDir string           // the machine's own folder, its disk
	Metadata   notice.Endpoints // to watch for notices
	Environ    []string         // the machine's environment, NAME=value; the program gets it without SCRIMP_*
	Borrowed   bool             // the environment is that of whoever started the server
	TaskUser   string           // place.UserAuto or place.UserSame
	Sole       bool             // nothing else in this process starts programs
	Background bool             // lower the agent's own priority once the program runs
	Notice     time.Duration    // how long the machine stays once the agent is told to end; 0: as long as the job's grace
	Quiet      time.Duration    // how long an unmodified program's checkpoint folder rests before it is captured
	Now        func() time.Time
	Log        *slog.Logger

	Open  func(context.Context, keeper.Options) (keeper.Keeper, error)
	Store *httpblob.Bucket // the server's own
	// Lends fetches credentials for the job's store, where the server lends them
	Lends func(context.Context) (api.StoreCredentials, error)
	// Works asks where in that store the work folder lies, or says why what it was told was not taken
	Works  func(ctx context.Context, refused string) (api.WorkBlob, error)
	Setups *setup.Cache // what set-ups made on the machine; nil: none is kept
	Pace   Pace
}

// What holds where an assignment says nothing.
const (
	defaultReport  = time.Second
	defaultGrace   = 30 * time.Second
	DefaultSilence = 5 * time.Minute
)
