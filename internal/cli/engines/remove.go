package engines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/engine"
	"scrimp/internal/engine/ssh/setting"
	"scrimp/internal/lib/draw"
	"scrimp/internal/wire/api"
)

func (a *app) engineRmCmd() *cobra.Command {
	var force bool
	cmd := &cobra.Command{Use: "rm NAME", Short: "Remove an engine", Args: command.Takes("NAME"),
		Long: "Removes an engine from engines.yaml. It counts when the server restarts: then the engine sells nothing, " +
			"and the server no longer watches what runs there, which may cost money until you add the engine again. An " +
			"engine with machines is refused while the server runs. Tokens of machines that join are revoked at once." +
			command.PlainExit,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.owns()
			if err == nil && !force {
				err = a.unused(cmd.Context(), args[0])
			}
			if err == nil {
				err = engine.RemoveSetting(a.Data, args[0])
			}
			if err == nil {
				err = setting.RevokeTokens(a.Data, args[0])
			}
			if err != nil {
				return err
			}
			return a.Showf(map[string]string{"removed": args[0]}, "Engine %s is removed from %s. It counts when the server "+
				"starts anew: scrimp server stop.\n", args[0],
				filepath.Join(a.Data, engine.SettingsName))
		}}
	cmd.Flags().BoolVar(&force, "force", false, "remove it though machines of it run (default: refuse)")
	return cmd
}

// unused returns an error if a running server knows machines of the engine that may still be billed.
func (a *app) unused(ctx context.Context, name string) error {
	c, err := a.Open(ctx)
	if errors.Is(err, command.ErrNoServer) {
		return nil
	}
	var list []api.Machine
	if err == nil {
		err = c.Do(ctx, http.MethodGet, "/v1/machines", nil, &list)
	}
	if err != nil {
		return err
	}
	var runs []string
	for _, m := range list {
		if m.Engine == name {
			runs = append(runs, strings.TrimSuffix(m.Instance+" with "+m.Job, " with "))
		}
	}
	if len(runs) > 0 {
		return fmt.Errorf("%s of engine %s may cost something (%s): without the engine, nothing would watch or end it. End "+
			"its jobs first (scrimp stop, scrimp machines), or --force", draw.Count(len(runs), "machine"), name,
			strings.Join(runs, ", "))
	}
	return nil
}
