"""Bradley-Terry ratings computed another way: fixed-point iteration on the odds, then a dense inverse.

Reads games as "(first, second, wins, draws, losses) ..." and prints "player elo deviation" for all players but 0.
"""

import math
import re
import sys

games = {}
for text in re.findall(r"\(([^)]*)\)", sys.argv[1]):
    first, second, wins, draws, losses = map(int, text.split(","))
    for one, other, won in ((first, second, wins), (second, first, losses)):
        points, played = games.get((one, other), (0.5, 1.0))  # one virtual draw a pairing
        games[one, other] = (points + won + draws / 2, played + wins + draws + losses)

players = sorted({one for one, _ in games})
theta = dict.fromkeys(players, 0.0)
for _ in range(200_000):
    change = 0.0
    for one in players[1:]:
        # One-dimensional Newton step for this player alone.
        slope = curve = 0.0
        for (who, other), (points, played) in games.items():
            if who == one:
                p = 1 / (1 + math.exp(theta[other] - theta[one]))
                slope += points - played * p
                curve += played * p * (1 - p)
        step = max(-1.0, min(1.0, slope / curve))
        theta[one] += step
        change = max(change, abs(step))
    if change < 1e-14:
        break

n = len(players) - 1
matrix = [[0.0] * n + [float(row == column) for column in range(n)] for row in range(n)]
for (one, other), (_, played) in games.items():
    p = 1 / (1 + math.exp(theta[other] - theta[one]))
    weight = played * p * (1 - p)
    row, column = players.index(one) - 1, players.index(other) - 1
    if row >= 0:
        matrix[row][row] += weight
        if column >= 0:
            matrix[row][column] -= weight
for pivot in range(n):  # Gauss-Jordan
    best = max(range(pivot, n), key=lambda row: abs(matrix[row][pivot]))
    matrix[pivot], matrix[best] = matrix[best], matrix[pivot]
    head = matrix[pivot][pivot]
    matrix[pivot] = [value / head for value in matrix[pivot]]
    for row in range(n):
        if row != pivot and matrix[row][pivot]:
            factor = matrix[row][pivot]
            matrix[row] = [a - factor * b for a, b in zip(matrix[row], matrix[pivot])]

scale = 400 / math.log(10)
for at, player in enumerate(players[1:]):
    print(player, repr(theta[player] * scale), repr(math.sqrt(matrix[at][n + at]) * scale))
