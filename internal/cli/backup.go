package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/lib/draw"
	"scrimp/internal/server"
	"scrimp/internal/server/bills"
	"scrimp/internal/store"
	"scrimp/internal/store/backup"
	"scrimp/internal/store/postgres"
	"scrimp/internal/store/sqlite"
)

func (a *app) backupCmd() *cobra.Command {
	return &cobra.Command{Use: "backup FILE", Short: "Back the server up into a file, while it works",
		Args: command.Takes("FILE"), GroupID: command.GroupShare,
		Long: "Writes the log, the ledger, the kept bills, users, hashes of tokens and the output of all jobs into a " +
			"file, as of one moment, and checks it. The server works on meanwhile. Work folders, checkpoints, outputs and " +
			"secrets are not in it." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			r, err := c.Request(ctx, http.MethodGet, "/v1/backup")
			if err != nil {
				return err
			}
			defer func() { _ = r.Body.Close() }()
			sum, err := keepBackup(r.Body, args[0])
			if err != nil {
				return fmt.Errorf("back up: %w", err)
			}
			return a.summed("Backed up", sum, args[0])
		})}
}

// keepBackup writes a backup to a temporary file and renames it once it is complete.
func keepBackup(from io.Reader, path string) (sum backup.Sum, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".backup-*") // 0600
	if err != nil {
		return sum, err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := io.Copy(f, from); err != nil {
		return sum, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return sum, err
	}
	if sum, err = backup.Check(f); err != nil {
		return sum, err
	}
	if err := f.Sync(); err != nil {
		return sum, err
	}
	return sum, os.Rename(f.Name(), path)
}

func (a *app) summed(what string, sum backup.Sum, where string) error {
	if a.JSON {
		return a.Print(sum)
	}
	kept := ""
	if sum.Bills > 0 {
		kept = ", " + draw.Count(sum.Bills, "import") + " of bills"
	}
	a.Printf("%s %s, %s%s and the output of %s: %s\nSHA-256 %x\n", what, draw.Count(int(sum.End), "event"),
		draw.Count(int(sum.Postings), "posting"), kept, draw.Count(sum.Outputs, "attempt"), where, sum.Hash)
	return nil
}

func (a *app) restoreCmd() *cobra.Command {
	var db string
	cmd := &cobra.Command{Use: "restore FILE", Short: "Fill an empty data folder or database from a backup",
		Args: command.Takes("FILE"), GroupID: command.GroupShare,
		Long: "Fills the data folder, or with --db a PostgreSQL database, from a backup, and compares the result " +
			"with the backup. The rows of bills go to the data folder in both cases. The folder and the database must " +
			"be empty, and no server may run there. A backup of SQLite restores into PostgreSQL, and the other way " +
			"round." + command.PlainExit,
		Example: "  scrimp --data new restore backup.tar.gz\n" +
			"  scrimp --data new restore backup.tar.gz --db postgres://scrimp@db/scrimp",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			defer func() { _ = f.Close() }()
			dir, err := filepath.Abs(a.Data)
			if err != nil {
				return err
			}
			public, err := server.Private(dir) // others cannot read the restored data before a server starts
			if err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			defer public()
			var st store.Replica
			db = cmp.Or(db, os.Getenv("SCRIMP_DB"))
			if db == "" {
				st, err = sqlite.Open(dir)
			} else {
				st, err = postgres.Open(cmd.Context(), postgres.Default(db, dir))
			}
			if err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			defer func() { _ = st.Close() }()
			if err := st.TryLead(cmd.Context()); err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			sum, err := backup.Whole{Store: st, Bills: bills.Folder(dir)}.Restore(cmd.Context(), f)
			if err != nil {
				return err
			}
			return a.summed("Restored", sum, dir)
		}}
	cmd.Flags().StringVar(&db, "db", "", "PostgreSQL `address`, postgres://… (environment: SCRIMP_DB; default: SQLite "+
		"in the data folder)")
	return cmd
}

func (a *app) openapiCmd() *cobra.Command {
	return &cobra.Command{Use: "openapi", Short: "Print the API's description (OpenAPI)", Args: command.Takes(),
		Long: "Prints the description of the HTTP API as OpenAPI 3.1, as GET /v1/openapi.json has it." + command.PlainExit,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Out.Write(server.OpenAPI(Version))
			return err
		}}
}
