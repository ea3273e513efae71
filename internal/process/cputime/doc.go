// Package cputime measures how much this process computes.
package cputime
