// Package fileid distinguishes a file or a folder from its copies.
package fileid
