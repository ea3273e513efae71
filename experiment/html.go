package experiment

import (
	"html/template"
	"io"
)

// HTML writes the report as one page that needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	table := r.table()
	return page.Execute(w, map[string]any{
		"Title": r.title(), "Settings": r.set(), "Groups": groups(), "Names": table[0], "Rows": table[1:], "Runs": r.Runs,
		"Plots": template.HTML(r.svg()), // svg escapes all of it
	})
}

// groups of columns have a common heading.
func groups() (all []group) {
	for _, c := range columns {
		if n := len(all); n > 0 && all[n-1].Name == c.group {
			all[n-1].Span++
		} else {
			all = append(all, group{c.group, 1})
		}
	}
	return all
}

// group is columns with a common heading.
type group struct {
	Name string
	Span int
}

var page = template.Must(template.New("overload").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>utr experiment overload</title>
<style>
:root { color-scheme: light dark; --ground: #fff; --text: #222; --faint: #555; --line: #d8d8d8 }
@media screen and (prefers-color-scheme: dark) { :root { --ground: #16181c; --text: #e6e6e6; --faint: #b0b0b0; --line: #3a3d44 } }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; font: 1rem/1.5 system-ui, sans-serif; background: var(--ground); color: var(--text) }
h1 { font-size: 1.4rem; margin: .5rem 0 }
h2 { font-size: 1.1rem; margin: 1.5rem 0 .5rem }
p.settings { color: var(--faint); margin: .25rem 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; white-space: nowrap }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
thead th { font-weight: 600 }
thead tr:first-child th { color: var(--faint); font-weight: 400; text-align: center; border-bottom: 0 }
svg { display: block; width: 100%; min-width: 32rem; height: auto }
dt { font-weight: 600 } dd { margin: 0 0 .5rem 1rem }
@media print {
  :root { --ground: #fff; --text: #000; --faint: #333; --line: #999 }
  body { max-width: none; padding: 0 } .wide { overflow: visible } table { font-size: 7.5pt } th, td { padding: 1pt 3pt }
  svg { min-width: 0; max-height: 24cm; break-inside: avoid }
}
</style>
</head>
<body>
<h1>Retry policies under overload</h1>
<p>{{.Title}}.</p>
<p class="settings">{{.Settings}}. Virtual time: a simulation, not a measurement of a server.</p>
<div class="wide" role="region" aria-label="Results" tabindex="0">
<table>
<thead>
<tr>{{range .Groups}}<th colspan="{{.Span}}" scope="colgroup">{{.Name}}</th>{{end}}</tr>
<tr>{{range .Names}}<th scope="col">{{.}}</th>{{end}}</tr>
</thead>
<tbody>
{{range .Rows}}<tr>{{range $i, $c := .}}{{if eq $i 0}}<th scope="row">{{$c}}</th>{{else}}<td>{{$c}}</td>{{end}}{{end}}</tr>
{{end}}</tbody>
</table>
</div>
<h2>Policies</h2>
<dl>
{{range .Runs}}<dt>{{.Policy.Name}}</dt><dd>{{.Policy.What}}</dd>
{{end}}</dl>
<h2>Over time</h2>
<div class="wide" role="region" aria-label="Plots" tabindex="0">
{{.Plots}}</div>
<p class="settings">The shaded time is the spike. “back after” is how long after the spike goodput returns to 95 percent of what it was before, and stays there.</p>
</body>
</html>
`))
