// Package fileid tells a file or a folder from its copies.
package fileid
