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

// Config describes the machine and the agent of an attempt.
type Config struct {
	Instance   string           // the provider's id of the machine
	MachineDir string           // the machine's own folder, on its disk
	Metadata   notice.Endpoints // where to watch for notices
	Environ    []string         // the machine's environment, NAME=value; the program gets it without SCRIMP_*
	Borrowed   bool             // the environment belongs to whoever started the server
	TaskUser   string           // place.UserAuto or place.UserSame
	Sole       bool             // nothing else in this process starts programs
	Background bool             // lower the agent's own priority once the program runs
	Notice     time.Duration    // how long the machine stays once the agent receives SIGTERM; 0: the job's grace
	Quiet      time.Duration    // how long an unmodified program's checkpoint folder must stay unchanged before capture
	Now        func() time.Time
	Log        *slog.Logger

	Open  func(context.Context, keeper.Options) (keeper.Keeper, error)
	Store *httpblob.Bucket // the server's own store
	// Lends fetches credentials for the job's store, if the server lends them.
	Lends func(context.Context) (api.StoreCredentials, error)
	// Works asks for the location of the work folder in that store. refused tells the server why
	// the agent rejected its last answer.
	Works func(ctx context.Context, refused string) (api.WorkBlob, error)
	// Searches passes a call about a search of the program's own to the server, and returns its status and answer.
	Searches func(ctx context.Context, body []byte) (status int, answer []byte, err error)
	Setups   *setup.Cache // results of set-ups on this machine; nil: keep none
	Pace     Pace
}

// Defaults for an assignment that sets no value.
const (
	defaultReport  = time.Second
	defaultGrace   = 30 * time.Second
	DefaultSilence = 5 * time.Minute
)
