//go:build !local

package pgtest

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

func query(address, text string) (rows []string, err error) {
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	results, err := conn.Exec(ctx, text).ReadAll()
	for _, r := range results {
		for _, row := range r.Rows {
			columns := make([]string, len(row))
			for n, value := range row {
				columns[n] = string(value)
			}
			rows = append(rows, strings.Join(columns, "|"))
		}
	}
	return rows, err
}
