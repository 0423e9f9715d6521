#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes figures of a bench as tables in Markdown.

  assay bench --suite SUITE --candidate cuda --cold --hot --json FILE
  tools/bench_table.py FILE

A table a group of cases, a row a case, and the geometric means below.
"""
import argparse
import json
import sys

CACHES = ('cold', 'hot', '')


def ratio(value):
    return f'{value:.3f}' if value else ''


def columns_of(row, besides):
    """Title and text of what one figure says."""
    cache = f'{row["cache"]} ' if row.get('cache') else ''
    upstream = row.get('upstream_tflop_per_s')
    yield f'{cache}TFLOP/s', f'{row["tflop_per_s"]:.4g}' if 'tflop_per_s' in row else ''
    yield f'{cache}GB/s', f'{row["gb_per_s"]:.0f}' if 'gb_per_s' in row else ''
    yield f'{cache}roofline', (f'{100 * row["roofline_share"]:.1f} %'
                               if 'roofline_share' in row else '')
    yield f'{cache}upstream', f'{upstream:.4g}' if upstream else ''
    yield f'{cache}of upstream', ratio(row.get('over_upstream'))
    found = {one['candidate']: one['ratio'] for one in row.get('over_beside', ())}
    for beside in besides:
        yield f'{cache}of {beside}', ratio(found.get(beside))
    yield f'{cache}MHz', f'{row["sm_clock_mhz"]:.0f}' if 'sm_clock_mhz' in row else ''
    yield f'{cache}W', f'{row["power_w"]:.0f}' if 'power_w' in row else ''


def line(cells):
    return '| ' + ' | '.join(cells) + ' |'


def table(rows, besides):
    """Lines of one group's table; a column in which nothing stands is left out."""
    cases, titles = {}, ['case']
    for row in rows:
        cells = cases.setdefault(row['case'], {'case': f'`{row["case"]}`'})
        for title, text in columns_of(row, besides):
            cells[title] = text
            if title not in titles and text:
                titles.append(title)
    yield line(titles)
    yield '|' + '---|' * len(titles)
    for cells in cases.values():
        yield line([cells.get(title, '') for title in titles])


def counted(cases):
    return f'{cases} case{"" if cases == 1 else "s"}'


def mean(group):
    """What the cases of a group come to."""
    text = [f'{group.get("cache", "")} {counted(group["cases"])}'.strip()]
    if 'over_upstream' in group:
        text.append(f'{group["over_upstream"]:.3f} of upstream, at least '
                    f'{group["least_over_upstream"]:.3f}')
    if 'over_upstream_by_vendor' in group:
        text.append(f'{group["over_upstream_by_vendor"]:.3f} of upstream '
                    'by the vendor\'s')
    text += [f'{one["ratio"]:.3f} of {one["candidate"]}'
             for one in group.get('over_beside', ())]
    return 'Geometric mean, ' + ', '.join(text) + '.'


def tables(objects):
    candidate = objects[0]['candidate']
    figures = [one for one in objects if one['type'] == 'bench' and
               one['candidate'] == candidate and 'group' in one]
    figures.sort(key=lambda one: CACHES.index(one.get('cache', '')))
    means = [one for one in objects if one['type'] == 'bench_group']
    for group in dict.fromkeys(one['group'] for one in objects
                               if one['type'] == 'bench' and 'group' in one):
        rows = [one for one in figures if one['group'] == group]
        besides = list(dict.fromkeys(beside['candidate'] for row in rows
                                     for beside in row.get('over_beside', ())))
        yield f'### {group}'
        yield ''
        yield from table(rows, besides)
        yield ''
        for one in means:
            if one['group'] == group:
                yield mean(one)
                yield ''


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('file', help='what `assay bench --json` wrote; - is stdin')
    name = parser.parse_args().file
    try:
        with open(0 if name == '-' else name, encoding='utf-8') as file:
            objects = [json.loads(text) for text in file]
        if not objects or not all(isinstance(one, dict) for one in objects) or \
                objects[0].get('command') != 'bench':
            raise ValueError('it does not begin with the header of a bench')
    except (OSError, ValueError) as error:
        sys.exit(f'{name}: {error}; give what `assay bench --json` wrote')
    print('\n'.join(tables(objects)).rstrip())


if __name__ == '__main__':
    main()
