package command

import "slices"

// Category is a set of error codes that the server treats alike.
type Category []int32

// Has reports whether a code is in the category.
func (c Category) Has(code int32) bool { return slices.Contains(c, code) }

// The categories that matter here, as the server's list of error codes has them.
var (
	// Retriable errors of a retryable write have the label RetryableWriteError, and
	// those of a change stream ResumableChangeStreamError.
	Retriable = Category{6, 7, 89, 91, 134, 189, 262, 317, 358, 384, 402, 406, 407, 412, 462, 9001,
		10107, 11600, 11602, 13435, 13436, 50915}
	// NotPrimary errors come with the topologyVersion of a replica set's member.
	NotPrimary = Category{189, 10107, 11602, 13435, 13436}
	// SystemOverloaded errors have the label SystemOverloadedError.
	SystemOverloaded = Category{433, 449, 450, 462}
	// Resumable errors of a change stream have the label ResumableChangeStreamError, as the
	// retriable ones have.
	Resumable = Category{63, 133, 150, 234, 13388}
	// Transient errors have the label TransientTransactionError, whichever command of the
	// transaction failed. Before the commit the retriable ones have it, too.
	Transient = Category{24, 63, 112, 150, 239, 246, 249, 250, 251, 267, 272, 13388}
	// Interruption errors end a command as a whole; they are no errors of its statements.
	Interruption = Category{24, 50, 237, 262, 279, 281, 282, 290, 355, 453, 11600, 11601, 11602, 46841, 91331, 10045600}
)
