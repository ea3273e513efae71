package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/secret"
)

// URIOption is an option that is added to connection strings, such as
// compressors=zlib. Value is as it is meant, without escapes.
type URIOption struct{ Name, Value string }

// String is NAME=VALUE, to be shown: without a secret.
func (o URIOption) String() string {
	if secret.IsOption(o.Name) {
		return o.Name + "=" + secret.Mark
	}
	return o.Name + "=" + o.Value
}

// GoString shows no secret either.
func (o URIOption) GoString() string { return o.String() }

// ParseURIOption reads NAME=VALUE.
func ParseURIOption(text string) (URIOption, error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" || value == "" || strings.ContainsAny(name, "&;?/@ ") {
		return URIOption{}, errors.New("it must be NAME=VALUE, such as compressors=zlib")
	}
	return URIOption{name, value}, nil
}

// WithURIOptions gives a source whose deployments have these options in every
// connection string, in the place of their own of the same name. It is as safe
// for concurrent use as the source.
func WithURIOptions(s Source, options []URIOption) Source {
	if len(options) == 0 {
		return s
	}
	return &optionSource{s, slices.Clone(options)}
}

type optionSource struct {
	Source
	options []URIOption
}

func (s *optionSource) Acquire(ctx context.Context, i int) (Deployment, error) {
	d, err := s.Source.Acquire(ctx, i)
	if err != nil {
		return nil, err
	}
	// One that is lent again is the same deployment to whoever compares.
	return optionDeployment{d, s}, nil
}

func (s *optionSource) Release(d Deployment, broken bool) {
	if with, ok := d.(optionDeployment); ok {
		d = with.Deployment
	}
	s.Source.Release(d, broken)
}

type optionDeployment struct {
	Deployment
	source *optionSource
}

func (d optionDeployment) URI() string       { return d.source.add(d.Deployment.URI()) }
func (d optionDeployment) SingleURI() string { return d.source.add(d.Deployment.SingleURI()) }
func (d optionDeployment) DirectURI(address string) string {
	return d.source.add(d.Deployment.DirectURI(address))
}

// Log makes it a Logger: what the deployment below has, if it has any.
func (d optionDeployment) Log(from, to time.Time) []LogLine {
	if l, ok := d.Deployment.(Logger); ok {
		return l.Log(from, to)
	}
	return nil
}

// add adds the options to a connection string. One that cannot be read stays
// as it is: whoever connects says what is wrong with it.
func (s *optionSource) add(text string) string {
	u, err := parseURI(text)
	if err != nil {
		return text
	}
	for _, o := range s.options {
		u = u.with(o.Name, o.Value)
	}
	return u.String()
}

// CheckURIOptions tells what is wrong with options by themselves: one that no
// driver knows, or a value that it cannot have.
func CheckURIOptions(options []URIOption) error {
	if len(options) == 0 {
		return nil
	}
	s := &optionSource{options: options}
	if err := CheckURI(s.add("mongodb://localhost/")); err != nil {
		return fmt.Errorf("it makes no connection string: %w", err)
	}
	return nil
}
