package retry

import "github.com/unified-test-runner/utr/format/operations"

// Operation holds the properties of an operation that the rules depend on.
type Operation struct {
	Name  string
	Class operations.Class // which client option enables a retry after an overload error
	// RetryableRead and RetryableWrite are true for "Supported Read Operations" and "Supported Write Operations";
	// RetryableWrite also for commitTransaction and abortTransaction.
	RetryableRead, RetryableWrite bool
	// commitTransaction and abortTransaction: they are retried regardless of retryWrites
	EndsTransaction bool
	why             string // the operation is never retried
}

// Lookup returns an operation by name. Names are command names, with a suffix if only some uses of a command are
// retryable. An operation that is not in the list is a generic command.
func Lookup(name string) Operation {
	c, found := operations.LookupCommand(name)
	if !found {
		c, _ = operations.LookupCommand("runCommand")
		c.Name = name
	}
	return operationOf(c)
}

// Operations lists the operations, sorted by name. The caller may modify the slice.
func Operations() (all []Operation) {
	for _, c := range operations.Commands() {
		all = append(all, operationOf(c))
	}
	return all
}

func operationOf(c operations.Command) Operation {
	retried := c.Retried != operations.Never
	return Operation{Name: c.Name, Class: c.Class, RetryableRead: retried && c.Class == operations.Read,
		RetryableWrite: retried && c.Class == operations.Write, EndsTransaction: c.Retried == operations.Always, why: c.Why}
}
